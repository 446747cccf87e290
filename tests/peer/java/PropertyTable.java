// Prints what Apache Kafka declares about every setting, one JSON object per line.

import java.lang.reflect.Field;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import java.util.TreeMap;

import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.QuotaConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

public class PropertyTable {
    public static void main(String[] args) throws Exception {
        table("BROKER", AbstractKafkaConfig.CONFIG_DEF);
        table("DYNAMIC_ONLY", QuotaConfig.brokerQuotaConfigs());
        table("TOPIC", LogConfig.configDefCopy());
        table("GROUP", GroupConfig.CONFIG_DEF);
        table("CLIENT_METRICS", ClientMetricsConfigs.configDef());
    }

    static void table(String table, ConfigDef definition) throws Exception {
        Map<String, String> modes = DynamicBrokerConfig.dynamicConfigUpdateModes();
        for (ConfigDef.ConfigKey key : new TreeMap<>(definition.configKeys()).values()) {
            Map<String, Object> facts = new LinkedHashMap<>();
            facts.put("table", table);
            facts.put("name", key.name);
            facts.put("type", key.type.name());
            facts.put("required", !key.hasDefault());
            facts.put("default", key.hasDefault() ? ConfigDef.convertToString(key.defaultValue, key.type) : null);
            facts.put("importance", key.importance.name());
            facts.put("internal", key.internalConfig);
            boolean broker = table.equals("BROKER") || table.equals("DYNAMIC_ONLY");
            facts.put("update", broker ? modes.getOrDefault(key.name, "read-only") : "read-only");
            facts.put("synonyms", synonyms(table, key.name));
            facts.put("validator", key.validator == null ? null : key.validator.getClass().getSimpleName());
            facts.put("allowed", key.validator == null ? null : key.validator.toString());
            facts.put("empty", !(key.validator instanceof ConfigDef.ValidList) || emptyAllowed(key.validator));
            System.out.println(json(facts));
        }
    }

    static List<String> synonyms(String table, String name) {
        switch (table) {
            case "TOPIC":
                return ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.getOrDefault(name, List.of())
                    .stream().map(synonym -> synonym.name()).toList();
            case "GROUP":
                return GroupConfig.brokerSynonym(name).map(List::of).orElse(List.of());
            case "BROKER":
                List<String> all = DynamicBrokerConfig.brokerConfigSynonyms(name, false);
                return all.size() > 1 ? all : List.of();
            default:
                return List.of();
        }
    }

    static boolean emptyAllowed(ConfigDef.Validator validator) throws Exception {
        Field field = ConfigDef.ValidList.class.getDeclaredField("isEmptyAllowed");
        field.setAccessible(true);
        return field.getBoolean(validator);
    }

    static String json(Object value) {
        if (value == null || value instanceof Boolean) return String.valueOf(value);
        if (value instanceof Map<?, ?> map) {
            StringJoiner joiner = new StringJoiner(",", "{", "}");
            map.forEach((key, each) -> joiner.add(json(key) + ":" + json(each)));
            return joiner.toString();
        }
        if (value instanceof List<?> list) {
            StringJoiner joiner = new StringJoiner(",", "[", "]");
            list.forEach(each -> joiner.add(json(each)));
            return joiner.toString();
        }
        return '"' + value.toString().replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }
}
